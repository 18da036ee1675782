// Marks what libpalladium.so exports; everything else is hidden.
#pragma once

#define PALLADIUM_API __attribute__((visibility("default")))
