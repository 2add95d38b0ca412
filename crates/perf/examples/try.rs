fn main() { perf::try_out(std::env::args().skip(1).collect()) }
