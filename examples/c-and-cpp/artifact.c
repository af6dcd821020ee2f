/* A model that is in this program: no compiler, no file, no Sardonyx. */
#include "bars.h"
#include "pictures.h"
#include <stdio.h>

int main(void) {
  sdx_error *error = NULL;
  sdx_session *model = bars_open(&error);
  float scores[2][4];
  if (!model || bars_run(model, &pictures[0][0][0], &scores[0][0], &error)) {
    fprintf(stderr, "%s\n", bars_error_message(error));
    return 1;
  }
  for (int picture = 0; picture < 2; ++picture) {
    int best = 0;
    for (int kind = 1; kind < 4; ++kind)
      if (scores[picture][kind] > scores[picture][best])
        best = kind;
    printf("%s %.3f\n", kinds[best], scores[picture][best]);
  }
  bars_close(model);
  return 0;
}
