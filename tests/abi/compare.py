"""Holds two layouts of the C interface against its growth rule; layouts are abidw's XML.

A struct may only grow at its end, and only when it begins with struct_size or its stride travels beside it (--strided).
Members keep offset and type. An enum may only gain enumerators. Macros keep their values. Prints each breach; exit code 1
when there is one.
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

    def members(self, name):
        found = {}
        for member in self.structs[name].iter("data-member"):
            variable = member.find("var-decl")
            found[variable.get("name")] = (int(member.get("layout-offset-in-bits")), self.describe(variable.get("type-id")))
        return found

    def size(self, name):
        return int(self.structs[name].get("size-in-bits"))


def compare_structs(old, new, strided):
    for name in sorted(old.structs):
        if name == "dsv4_abi_surface":
            continue
        if name not in new.structs:
            yield f"struct {name} is gone"
            continue
        before, after = old.members(name), new.members(name)
        for member, (offset, kind) in before.items():
            if member not in after:
                yield f"{name}.{member} is gone"
            elif after[member][0] != offset:
                yield f"{name}.{member} moved from bit {offset} to bit {after[member][0]}"
            elif after[member][1] != kind:
                yield f"{name}.{member} was {kind} and is {after[member][1]}"
        grows = next(iter(before), "") == "struct_size" or name in strided
        for member in after.keys() - before.keys():
            if not grows:
                yield f"{name} has no struct_size, so it cannot gain {member}"
            elif after[member][0] < old.size(name):
                yield f"{name}.{member} is new and lies inside the old struct; append it"
        if new.size(name) < old.size(name):
            yield f"{name} shrank from {old.size(name)} to {new.size(name)} bits"


def compare_enums(old, new):
    for name, values in sorted(old.enums.items()):
        for enumerator, value in values.items():
            now = new.enums.get(name, {}).get(enumerator)
            # The last member of some enums counts the others.
            if now != value and not (enumerator.endswith("_COUNT") and now is not None and int(now) > int(value)):
                yield f"{enumerator} was {value} and is {now if now is not None else 'gone'}"


def read_macros(path):
    macros = {}
    for line in open(path, encoding="utf-8"):
        name, _, value = line.strip().partition(" ")
        macros[name] = value
    return macros


def compare_macros(old, new):
    for name, value in sorted(old.items()):
        if name == "DSV4_ABI_MINOR":
            if int(new.get(name, -1)) < int(value):
                yield f"{name} went back from {value}"
        elif new.get(name) != value:
            yield f"{name} was {value} and is {new.get(name, 'gone')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("old_xml", "new_xml", "old_macros", "new_macros"):
        parser.add_argument(name)
    parser.add_argument("--strided", nargs="*", default=[])
    a = parser.parse_args()
    old, new = Layout(a.old_xml), Layout(a.new_xml)
    if len(old.structs) < 10:
        raise SystemExit(f"{a.old_xml} describes only {len(old.structs)} structs; it is no baseline")
    breaches = [
        *compare_structs(old, new, set(a.strided)),
        *compare_enums(old, new),
        *compare_macros(read_macros(a.old_macros), read_macros(a.new_macros)),
    ]
    for breach in breaches:
        print(f"ABI: {breach}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
