module github.com/parley-broker/parley

go 1.26
