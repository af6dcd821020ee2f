/* Two pictures, and what may be in one. */
#ifndef PICTURES_H
#define PICTURES_H

static const char *const kinds[] = {"row", "column", "falling", "rising"};
static const float pictures[2][3][3] = {{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}},
                                        {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}}};

#endif
