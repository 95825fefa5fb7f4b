/* An empty library: test_cupti_library.c maps it under the names of PyTorch's libraries and of other
 * packages' libraries. */
extern int occ_fake_torch;
int occ_fake_torch;
