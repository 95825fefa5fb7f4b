occq top -d m.db -o kernel,expect,achieved,error,elapsed,elapsed_error,measured,tail,partial_warp,idle,imbalance_across_blocks,imbalance_within_block,imbalance,unexplained,cause,loss
