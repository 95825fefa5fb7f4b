/* A library of no use: test_cupti_library.c maps it under the names of PyTorch's and of other packages'. */
extern int occ_fake_torch;
int occ_fake_torch;
