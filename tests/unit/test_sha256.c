/* SHA-256 and HMAC against the values that the standards print (FIPS 180-4's examples, RFC 4231), and lengths
 * around the end of a block against Python's hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "support/sha256.h"
#include "support/text.h"

static void check_hash(const uint8_t hash[OCC_SHA256_BYTES], const char *expected)
{
    char hex[OCC_SHA256_HEX_BYTES];
    occ_hex_encode(hash, OCC_SHA256_BYTES, hex);
    assert_string_equal(hex, expected);
}

static void hashes_of_the_standard(void **state)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    uint8_t hash[OCC_SHA256_BYTES];
    (void)state;
    occ_sha256("", 0, hash);
    check_hash(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    occ_sha256("abc", 3, hash);
    check_hash(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    occ_sha256(two_blocks, strlen(two_blocks), hash);
    check_hash(hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void lengths_around_a_block(void **state)
{
    static const struct {
        size_t n;
        const char *expected;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
    };
    char text[160];
    uint8_t hash[OCC_SHA256_BYTES];
    (void)state;
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        occ_sha256(text, rows[i].n, hash);
        check_hash(hash, rows[i].expected);
    }
}

static void keyed_hashes_of_rfc_4231(void **state)
{
    uint8_t key[131], data[50], hash[OCC_SHA256_BYTES];
    (void)state;
    memset(key, 0x0b, sizeof key);
    occ_hmac_sha256(key, 20, "Hi There", 8, hash);
    check_hash(hash, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    occ_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, hash);
    check_hash(hash, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    occ_hmac_sha256(key, 20, data, sizeof data, hash);
    check_hash(hash, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    occ_hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54, hash);
    check_hash(hash, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_of_the_standard),
        cmocka_unit_test(lengths_around_a_block),
        cmocka_unit_test(keyed_hashes_of_rfc_4231),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
