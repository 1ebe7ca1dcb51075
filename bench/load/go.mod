module moonloop/bench/load

go 1.24
