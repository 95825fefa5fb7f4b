occq top -d m.db -o kernel,expect,achieved,error,elapsed,elapsed_error,measured,tail,partial_warp,idle,between,within,imbalance,unexplained,cause,loss
