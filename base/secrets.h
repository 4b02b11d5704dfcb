// Secrets in addresses, and texts without them: the password or token ahead of the host, values of
// parameters with the name of a secret, and the key at the end of an RTMP address.
//
// In an address that is not written as it should be, more is hidden rather than less.
#pragma once

#include <stddef.h>

// The end of an address inside a text.
enum secrets_in {
    SECRETS_IN_NAME,     // nowhere: the text is one address, or a name without any
    SECRETS_IN_CHAIN,    // at the comma or the quote that ends it in a chain
    SECRETS_IN_SENTENCE, // at a space or a quote
};

// Copy the text with "***" in place of each secret, cut to `size` bytes, 1 or more.
void secrets_copy(const char *text, enum secrets_in in, char *to, size_t size);

// The same of a sentence whose end was cut off: an address that the cut may have met is hidden from its
// host on, as the sign that tells its password may be missing.
void secrets_copy_cut(const char *sentence, char *to, size_t size);

// The same as secrets_copy(), in memory of malloc(); NULL without memory.
char *secrets_dup(const char *text, enum secrets_in in);

// Overwrite the letters of each secret with asterisks: nothing moves.
void secrets_blank(char *text, enum secrets_in in);

// Whether the name of a parameter, of `length` letters, is that of a secret.
int secrets_has_name(const char *name, size_t length);
