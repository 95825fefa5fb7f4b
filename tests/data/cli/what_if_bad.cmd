occq what-if -d h.db --gpu h20x; occq what-if -d h.db
