// What others leak, for LeakSanitizer: linked into every program of `make test-asan`, as what is confined to a sandbox
// could not read a file at its end.
const char *__lsan_default_suppressions(void);

// GnuTLS 3.7, of a certificate whose key is another's, as libmicrohttpd gives it (unit_http_tls); x265 3.5, of each encoder;
// SDL 2.26, of windows and of what it looks for without a screen.
const char *__lsan_default_suppressions(void)
{
    return "leak:gnutls_x509_crt_init\n"
           "leak:libx265.so\n"
           "leak:libSDL2\n";
}
