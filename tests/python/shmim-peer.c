/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A writer and reader with the real ImageStreamIO, for shmim.py: a command a
 * line, an answer a line. */
#include "ImageStreamIO.h"

#include <errno.h>
#include <string.h>

static IMAGE image;
static int semaphore = -1;

/* Byte i of frame n is n + 7 i. */
static int
write_frame (unsigned n)
{
  image.md->write = 1;
  for (uint64_t i = 0; i < image.md->imdatamemsize; i++)
    image.array.UI8[i] = (uint8_t) (n + 7 * i);
  return (int) ImageStreamIO_UpdateIm (&image);
}

/* Waits for a frame. Prints its count and how many bytes are wrong. */
static int
read_frame (unsigned n)
{
  struct timespec end;
  unsigned long wrong = 0;

  if (semaphore < 0)
    semaphore = ImageStreamIO_getsemwaitindex (&image, 0);
  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  if (ImageStreamIO_semtimedwait (&image, semaphore, &end) != 0)
    return errno;
  for (uint64_t i = 0; i < image.md->imdatamemsize; i++)
    wrong += image.array.UI8[i] != (uint8_t) (n + 7 * i);
  printf ("%lu %lu ", (unsigned long) image.md->cnt0, wrong);
  return 0;
}

static int
make (char *words)
{
  char name[80];
  unsigned type, size[3];
  int n_axes, n_semaphores, ring, kind;

  if (sscanf (words, "%79s %u %d %u %u %u %d %d %i", name, &type, &n_axes,
          &size[0], &size[1], &size[2], &n_semaphores, &ring, &kind) != 9)
    return 1;
  return ImageStreamIO_createIm_gpu (&image, name, n_axes, size, (uint8_t) type,
      -1, 1, n_semaphores, 3, (uint64_t) kind, (uint32_t) ring);
}

int
main (void)
{
  char line[200];

  while (fgets (line, sizeof (line), stdin)) {
    char *words = strchr (line, ' ');
    int status = 1;

    line[strcspn (line, "\n")] = '\0';
    if (strncmp (line, "make ", 5) == 0)
      status = make (words);
    else if (strncmp (line, "open ", 5) == 0)
      status = ImageStreamIO_openIm (&image, words + 1);
    else if (strncmp (line, "write ", 6) == 0)
      status = write_frame ((unsigned) atoi (words));
    else if (strncmp (line, "read ", 5) == 0)
      status = read_frame ((unsigned) atoi (words));
    else if (strcmp (line, "shape") == 0) {
      printf ("%u %u %u %u ", image.md->datatype, image.md->naxis,
          image.md->size[0], image.md->size[1]);
      status = 0;
    } else if (strcmp (line, "ring") == 0) {
      printf ("%u %u ", image.md->CBindex,
          ((uint8_t *)
                  image.CBimdata)[image.md->CBindex * image.md->imdatamemsize]);
      status = 0;
    } else if (strcmp (line, "destroy") == 0)
      status = ImageStreamIO_destroyIm (&image);
    printf ("%d\n", status);
    fflush (stdout);
  }
  return 0;
}
