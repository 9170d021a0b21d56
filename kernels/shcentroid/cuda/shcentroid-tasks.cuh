/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Planning tasks, on the host: what each block does. */
#pragma once

#include "shcentroid/cuda/shcentroid-integers.cuh"
#include "shcentroid/cuda/shcentroid-reals.cuh"

/* Tasks, and what a launch of them needs. */
struct Tasks {
  Task *tasks; /* on the device */
  uint32_t n_tasks, n_scratch;
  uint64_t n_weights;              /* columns and rows of all cells */
  uint32_t n_threads, shared_size; /* of the most demanding task; bytes */
};

struct Planner {
  const ImkShcentroidPlan *plan;
  bool reals; /* for the kernel of shcentroid-reals.cuh */
  bool fine;  /* there is much to do for each word */
  bool all;
  uint32_t sample_size;

  Task *tasks;     /* null while they are counted */
  Tasks needs;     /* without its tasks */
  uint32_t widest; /* of the cells */
};

static uint32_t
words_of (const Planner *p, uint32_t x, uint32_t width)
{
  return imk_div_up ((x + width) * p->sample_size, 4) - x * p->sample_size / 4;
}

/* Bytes of shared memory; the threshold may come later. */
static uint64_t
shared_size (const Planner *p, uint64_t n_cells, uint64_t width,
    uint64_t height, uint64_t groups)
{
  return p->reals ? reals::shared_size (p->all, n_cells, height, groups,
                        (width * p->sample_size / 4 + 2) * 4 / p->sample_size)
                  : integers::shared_size (p->all, n_cells, width, groups);
}

/* Rows are dealt to at least that many groups of threads. */
static uint32_t
least_groups (const Planner *p, uint32_t height)
{
  return imk_div_up (height, p->reals ? imk_shcentroid_group_rows (height)
                                      : (uint32_t) MAX_GROUP_ROWS);
}

/* Can one block do it, wherever the first pixel lies in its word? */
static bool
fits (const Planner *p, uint64_t n_cells, uint64_t width, uint32_t height)
{
  uint64_t words = width * p->sample_size / 4 + 2;
  uint64_t groups = least_groups (p, height);

  return words <= MAX_WORDS && (p->reals || words * groups <= MAX_THREADS) &&
         shared_size (p, n_cells, width, height, groups) <= MAX_SHARED;
}

/* Reals have groups of one height; integers as many as threads, rows and shared
 * memory are good for. */
static void
choose_groups (const Planner *p, Task *task)
{
  uint32_t groups = least_groups (p, task->height);
  uint32_t good = imk_div_up (task->height, p->fine ? BATCH : GOOD_GROUP_ROWS);

  while (
      !p->reals && groups < good && (groups + 1) * task->words <= MAX_THREADS &&
      shared_size (p, task->n_cells, task->width, task->height, groups + 1) <=
          MAX_SHARED)
    groups++;
  task->group_rows =
      (uint16_t) (p->reals ? imk_shcentroid_group_rows (task->height)
                           : imk_div_up (task->height, groups));
  task->groups = (uint16_t) imk_div_up (task->height, task->group_rows);
}

/* Lanes that share a cell: for reals so that the columns of a narrow one are
 * added up by the order of arithmetic/float-centroid.h in one lane or four. */
static uint32_t
choose_lanes (const Planner *p, const Task *task, uint32_t threads)
{
  uint32_t columns = task->width / task->n_cells * task->groups, lanes = 1;

  if (p->reals)
    return reals::lanes_for (p->widest);
  while (lanes < 32 && lanes * COLUMNS_PER_LANE < columns &&
         lanes * 2 * task->n_cells <= threads)
    lanes *= 2;
  return lanes;
}

/* Threads that @n_cells of reals would like to have when they are summed up. */
static uint32_t
n_lanes (const Planner *p, uint64_t n_cells)
{
  uint64_t n = n_cells * reals::lanes_for (p->widest);

  return n < UINT32_MAX ? (uint32_t) n : UINT32_MAX;
}

static void
add_task (Planner *p, Task task)
{
  uint32_t threads, most, size;

  task.first_word = (uint16_t) (task.x * p->sample_size / 4);
  task.words = (uint16_t) words_of (p, task.x, task.width);
  choose_groups (p, &task);
  threads = task.words * task.groups;
  if (p->reals)
    threads *= reals::shares (p->sample_size);
  if (p->reals && threads < n_lanes (p, task.n_cells))
    threads = n_lanes (p, task.n_cells) < GOOD_THREADS
                  ? n_lanes (p, task.n_cells)
              : threads < GOOD_THREADS ? GOOD_THREADS
                                       : threads;
  most = p->reals ? (uint32_t) reals::MOST_THREADS : (uint32_t) MAX_THREADS;
  threads = threads < most ? imk_div_up (threads, 32) * 32 : most;
  task.lanes = choose_lanes (p, &task, threads);
  size = (uint32_t) shared_size (
      p, task.n_cells, task.width, task.height, task.groups);
  p->needs.n_threads =
      threads > p->needs.n_threads ? threads : p->needs.n_threads;
  p->needs.shared_size =
      size > p->needs.shared_size ? size : p->needs.shared_size;
  if (p->tasks)
    p->tasks[p->needs.n_tasks] = task;
  p->needs.n_tasks++;
}

/* Cells [first, first + n) of one row of the grid, or one of a map. */
static void
add_whole (Planner *p, uint32_t first, uint32_t n)
{
  const ImkShcentroidRect *left = &p->plan->rects[first];
  const ImkShcentroidRect *right = &p->plan->rects[first + n - 1];
  Task task = {};

  task.first = first;
  task.n_cells = n;
  task.column = p->plan->columns ? first % p->plan->columns : 0;
  task.n_parts = 1;
  task.x = left->x;
  task.y = left->y;
  task.width = (uint16_t) (right->x + right->width - left->x);
  task.height = left->height;
  task.weights = (uint32_t) p->needs.n_weights;
  task.n_weights = task.width + n * task.height;
  p->needs.n_weights += task.n_weights;
  add_task (p, task);
}

static void
add_pieces (Planner *p, uint32_t cell)
{
  const ImkShcentroidRect *rect = &p->plan->rects[cell];
  uint32_t columns = rect->width < PIECE_COLUMNS ? rect->width : PIECE_COLUMNS;
  uint32_t rows = MAX_GROUP_ROWS;
  Task task = {};

  while (fits (p, 1, columns, rows + MAX_GROUP_ROWS))
    rows += MAX_GROUP_ROWS;
  task.first = cell;
  task.n_cells = 1;
  task.n_parts =
      imk_div_up (rect->width, columns) * imk_div_up (rect->height, rows);
  task.scratch = p->needs.n_scratch++;
  for (uint32_t y = 0; y < rect->height; y += rows)
    for (uint32_t x = 0; x < rect->width; x += columns) {
      uint32_t right = rect->width - x, below = rect->height - y;

      task.x = (uint16_t) (rect->x + x);
      task.y = (uint16_t) (rect->y + y);
      task.width = (uint16_t) (right < columns ? right : columns);
      task.height = (uint16_t) (below < rows ? below : rows);
      add_task (p, task);
    }
}

static void
add_cell (Planner *p, uint32_t cell)
{
  const ImkShcentroidRect *rect = &p->plan->rects[cell];

  if (fits (p, 1, rect->width, rect->height))
    add_whole (p, cell, 1);
  else
    add_pieces (p, cell);
}

/* Returns: into how many tasks a row of the grid is best cut: as few as
 * possible, since words at a cut are read twice, but where it is fine, some for
 * each multiprocessor; 0 when a cell alone is too much */
static uint32_t
tasks_a_row (const Planner *p)
{
  const ImkShcentroidPlan *plan = p->plan;
  uint32_t widest = 0, highest = 0;

  for (uint32_t i = 0; i < plan->columns; i++)
    if (plan->rects[i].width > widest)
      widest = plan->rects[i].width;
  for (uint32_t i = 0; i < plan->n_rects; i += plan->columns)
    if (plan->rects[i].height > highest)
      highest = plan->rects[i].height;
  for (uint32_t n = 1; n <= plan->columns; n++) {
    uint64_t cells = imk_div_up (plan->columns, n);
    bool enough = !p->fine || n == plan->columns ||
                  n * plan->rows >= (uint32_t) GOOD_TASKS ||
                  cells * widest * p->sample_size / 4 <= GOOD_WORDS;

    if (enough && fits (p, cells, cells * widest, highest))
      return n;
  }
  return 0;
}

static void
plan_tasks (Planner *p)
{
  const ImkShcentroidPlan *plan = p->plan;
  uint32_t n;

  p->needs.n_tasks = p->needs.n_scratch = p->needs.n_weights = 0;
  for (uint32_t i = 0; i < plan->n_rects; i++)
    if (plan->rects[i].width > p->widest)
      p->widest = plan->rects[i].width;
  n = plan->columns ? tasks_a_row (p) : 0;
  if (n == 0) {
    for (uint32_t i = 0; i < plan->n_rects; i++)
      add_cell (p, i);
    return;
  }
  for (uint32_t row = 0; row < plan->rows; row++)
    for (uint32_t i = 0; i < n; i++) {
      uint32_t from = (uint32_t) ((uint64_t) plan->columns * i / n);
      uint32_t to = (uint32_t) ((uint64_t) plan->columns * (i + 1) / n);

      add_whole (p, row * plan->columns + from, to - from);
    }
}
