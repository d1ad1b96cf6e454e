"""Holds two layouts of the C interface against its growth rule; layouts are abidw's XML.

A struct grows at its end when it begins with struct_size (and then has no padding there) or when its stride travels
beside it (--strided); any struct grows into its `reserved` words; those of --fixed in no other way. All other members keep
offset and type. An enum may only gain enumerators. Macros keep their values. Prints each breach; exit code 1 when there is
one.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree


class Layout:
    def __init__(self, path):
        self.types = {}
        self.structs = {}
        self.enums = {}
        for node in ElementTree.parse(path).getroot().iter():
            if "id" in node.attrib:
                self.types[node.get("id")] = node
            if node.tag == "class-decl" and node.get("is-declaration-only") != "yes" and node.get("name", "").startswith("dsv4_"):
                self.structs[node.get("name")] = node
            if node.tag == "enum-decl" and node.get("name", "").startswith("dsv4_"):
                self.enums[node.get("name")] = {e.get("name"): e.get("value") for e in node.iter("enumerator")}

    def describe(self, type_id):
        """A type as text; named types by their name."""
        node = self.types[type_id]
        tag = node.tag
        if tag in ("type-decl", "class-decl", "enum-decl", "union-decl"):
            return node.get("name")
        if tag == "typedef-decl":
            return node.get("name")
        if tag == "pointer-type-def":
            return self.describe(node.get("type-id")) + "*"
        if tag == "qualified-type-def":
            return "const " + self.describe(node.get("type-id"))
        if tag == "array-type-def":
            return self.describe(node.get("type-id")) + "".join(f"[{s.get('length')}]" for s in node.iter("subrange"))
        if tag == "function-type":
            parameters = ", ".join(self.describe(p.get("type-id")) for p in node.iter("parameter"))
            return self.describe(node.find("return").get("type-id")) + f"({parameters})"
        raise SystemExit(f"unknown kind of type in the layout: {tag}")

    def bits(self, type_id):
        node = self.types[type_id]
        if node.get("size-in-bits"):
            return int(node.get("size-in-bits"))
        if node.tag == "pointer-type-def":
            return 64
        inner = node.get("type-id") or node.find("underlying-type").get("type-id")
        return self.bits(inner)

    def members(self, name):
        """Name to (offset, end, type); offsets in bits."""
        found = {}
        for member in self.structs[name].iter("data-member"):
            variable = member.find("var-decl")
            begin, type_id = int(member.get("layout-offset-in-bits")), variable.get("type-id")
            found[variable.get("name")] = (begin, begin + self.bits(type_id), self.describe(type_id))
        return found

    def size(self, name):
        return int(self.structs[name].get("size-in-bits"))


def compare_structs(old, new, strided, fixed):
    for name in sorted(new.structs):
        members = new.members(name)
        if next(iter(members), "") == "struct_size" and name not in fixed and name != "dsv4_abi_surface":
            end = max(end for _, end, _ in members.values())
            if end != new.size(name):
                yield f"{name} ends with {new.size(name) - end} bits of padding, so a new member would not show in struct_size"
    for name in sorted(old.structs):
        if name == "dsv4_abi_surface":
            continue
        if name not in new.structs:
            yield f"struct {name} is gone"
            continue
        before, after = old.members(name), new.members(name)
        for member, (offset, _, kind) in before.items():
            if member == "reserved":
                continue
            if member not in after:
                yield f"{name}.{member} is gone"
            elif after[member][0] != offset:
                yield f"{name}.{member} moved from bit {offset} to bit {after[member][0]}"
            elif after[member][2] != kind:
                yield f"{name}.{member} was {kind} and is {after[member][2]}"
        grows = (next(iter(before), "") == "struct_size" or name in strided) and name not in fixed
        spare_begin, spare_end, _ = before.get("reserved", (0, 0, ""))
        for member in sorted(after.keys() - before.keys()):
            begin, end, _ = after[member]
            if spare_begin <= begin and end <= spare_end:
                continue
            if not grows:
                yield f"{name} is of fixed size, so it cannot gain {member}"
            elif begin < old.size(name):
                yield f"{name}.{member} is new and lies inside the old struct; append it"
        if new.size(name) < old.size(name):
            yield f"{name} shrank from {old.size(name)} to {new.size(name)} bits"
        elif new.size(name) > old.size(name) and not grows:
            yield f"{name} is of fixed size and grew from {old.size(name)} to {new.size(name)} bits"


def compare_enums(old, new):
    for name, values in sorted(old.enums.items()):
        for enumerator, value in values.items():
            now = new.enums.get(name, {}).get(enumerator)
            if now != value:
                yield f"{enumerator} was {value} and is {now if now is not None else 'gone'}"


def read_macros(path):
    macros = {}
    for line in open(path, encoding="utf-8"):
        name, _, value = line.strip().partition(" ")
        macros[name] = value
    return macros


def compare_macros(old, new):
    for name, value in sorted(old.items()):
        if name == "DSV4_ABI_MINOR" or name.endswith("_COUNT"):
            if int(new.get(name, -1)) < int(value):
                yield f"{name} went back from {value}"
        elif new.get(name) != value:
            yield f"{name} was {value} and is {new.get(name, 'gone')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("old_xml", "new_xml", "old_macros", "new_macros"):
        parser.add_argument(name)
    parser.add_argument("--strided", nargs="*", default=[])
    parser.add_argument("--fixed", nargs="*", default=[])
    a = parser.parse_args()
    old, new = Layout(a.old_xml), Layout(a.new_xml)
    if len(old.structs) < 10:
        raise SystemExit(f"{a.old_xml} describes only {len(old.structs)} structs; it is no baseline")
    breaches = [
        *compare_structs(old, new, set(a.strided), set(a.fixed)),
        *compare_enums(old, new),
        *compare_macros(read_macros(a.old_macros), read_macros(a.new_macros)),
    ]
    for breach in breaches:
        print(f"ABI: {breach}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
