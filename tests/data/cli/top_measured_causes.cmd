occq top -d m.db -o kernel,expect,achieved,achieved_ci95,elapsed,elapsed_ci95,measured,tail,partial_warp,idle,imbalance_across_blocks,imbalance_within_block,imbalance,unexplained,cause,loss
