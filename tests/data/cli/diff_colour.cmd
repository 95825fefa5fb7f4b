occq diff run:1 run:1 -d m.db --force --color always --no-pager | sed -n '/all kernels/p'
