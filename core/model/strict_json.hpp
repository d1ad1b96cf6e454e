// JSON for files that are trusted to be well meant and read as if they were not: a repeated key is an error, and so is
// text that is not UTF-8.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace dsv4::model {

// The object in `text`; `where` names the file in messages. Throws Failure(corrupt) for anything but one JSON object
// without repeated keys.
nlohmann::json parse_strict_object(std::string_view text, std::string_view where);

} // namespace dsv4::model
