module moonloop/tools/regex

go 1.26
