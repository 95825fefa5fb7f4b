occq what-if -d h.db --gpu a100-1g.5gb --kernel "gemm|softmax" --csv
