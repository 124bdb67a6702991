#include "daemon/program.hpp"

int main(int argc, char** argv) { return muniment::daemon::run_program(argc, argv, nullptr); }
