// What tests lower is checked behind each pass, unless somebody says that it is not to be.
#include <cstdlib>

extern "C" {
bool palladium_tests_verify = ::setenv("PALLADIUM_VERIFY", "1", 0) == 0;
}
