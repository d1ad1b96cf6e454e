// The one slow translation unit of the tests: Catch2's main, shared by every test program.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
