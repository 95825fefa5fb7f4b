occq what-if -d h.db --gpu gtx1080
