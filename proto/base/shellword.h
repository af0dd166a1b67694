/* shellword: text as one word of a shell's command. Pure. */
#ifndef NUI_BASE_SHELLWORD_H
#define NUI_BASE_SHELLWORD_H

#include "proto/base/strbuf.h"

/* In single quotes, whatever it holds. */
void shell_word (struct strbuf *b, const char *text);

#endif
