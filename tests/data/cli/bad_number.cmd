occq runs -n 1x
