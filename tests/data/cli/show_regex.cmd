occq show -d h.db '(gemm|attn).*' -n 1
