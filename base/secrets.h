// Secrets in addresses, and texts without them: the password or token ahead of the host, values of
// parameters that are called like secrets, and the key at the end of an RTMP address.
//
// Where an address is not written as it should be, more is hidden rather than less.
#pragma once

#include <stddef.h>

// Where a text ends an address that it holds.
enum secrets_in {
    SECRETS_IN_NAME,     // nowhere: the text is one address, or a name without any
    SECRETS_IN_CHAIN,    // at the comma or the quote that ends it in a chain
    SECRETS_IN_SENTENCE, // at a space or a quote
};

// Copy the text with "***" in place of each secret, cut to `size` bytes.
void secrets_copy(const char *text, enum secrets_in in, char *to, size_t size);

// The same, in memory of malloc(); NULL without memory.
char *secrets_dup(const char *text, enum secrets_in in);

// Put as many asterisks as it has letters in place of each secret: nothing moves.
void secrets_blank(char *text, enum secrets_in in);

// Whether a parameter's name, of so many letters, is that of a secret.
int secrets_has_name(const char *name, size_t length);
