for k in evil softmax too_many; do occq show -d m.db $k --all; done
