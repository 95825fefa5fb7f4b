occq show -d m.db tiny --all
