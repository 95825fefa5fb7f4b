occq top -d m.db --cause unexplained; occq top -d m.db --cause tail --min-loss 10 -o kernel,tail; occq top -d m.db --min-loss 98 -o kernel,cause,loss; occq top -d h.db --cause imbalance_within_block
