/* The same in C++17: it compiles, and every kind of macro expands to what compiles. Never run. */
#include "header.c"
