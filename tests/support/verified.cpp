// What tests lower is checked behind each pass, and what they compile is what it is expected to be,
// unless somebody says that it is not to be.
#include <cstdlib>

extern "C" {
bool palladium_tests_verify =
    ::setenv("PALLADIUM_VERIFY", "1", 0) == 0 && ::setenv("PALLADIUM_EXPECT", "error", 0) == 0;
}
