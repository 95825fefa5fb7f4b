occq show -d h.db tiny --json
