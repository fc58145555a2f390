/* A link between two network namespaces: two TUN devices, and packets that cross from one to the other.
 *
 *   delay SERVER-NAMESPACE CLIENT-NAMESPACE BITS-PER-SECOND ONE-WAY-MICROSECONDS QUEUE-BYTES
 *
 * From the server to the client, packets pass a FIFO queue of so many bytes that is emptied at the rate, then wait for
 * the delay. In the other direction they only wait. A packet that finds the queue full is dropped and counted. The
 * rate counts IP packets. The devices are named `link`; the script that starts this program gives them addresses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { MTU = 1500, SLOTS = 16384 };

struct packet {
  int64_t due;
  int length;
  unsigned char bytes[MTU + 36];
};

/* Packets in one direction, in order: their due times never decrease. */
struct direction {
  struct packet *ring;
  unsigned first, count;
  int64_t rate;      /* bits a second; 0 for no limit */
  int64_t free_at;   /* when the last packet of the queue is sent */
  int64_t limit;     /* bytes of the queue */
  int64_t dropped;
};

static volatile sig_atomic_t is_ended;

static void end(int number) {
  (void)number;
  is_ended = 1;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int open_device(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (namespace < 0) fail(path);
  if (setns(namespace, CLONE_NEWNET) != 0) fail("setns");
  close(namespace);
  int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) fail("/dev/net/tun");
  struct ifreq request;
  memset(&request, 0, sizeof request);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  strcpy(request.ifr_name, "link");
  if (ioctl(device, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  return device;
}

static void take(int device, struct direction *way, int64_t delay) {
  for (;;) {
    unsigned char spare[MTU + 36];
    struct packet *packet = &way->ring[(way->first + way->count) % SLOTS];
    int has_room = way->count < SLOTS;
    ssize_t length = read(device, has_room ? packet->bytes : spare, sizeof spare);
    if (length <= 0) return;
    int64_t time = now(), start = time;
    if (way->rate > 0) {
      if (way->free_at > start) start = way->free_at;
      int64_t queued = (start - time) / 8 * way->rate / 1000000000;
      if (!has_room || queued + length > way->limit) {
        way->dropped++;
        continue;
      }
      start += length * 8 * 1000000000 / way->rate;
      way->free_at = start;
    } else if (!has_room) {
      way->dropped++;
      continue;
    }
    packet->length = (int)length;
    packet->due = start + delay;
    way->count++;
  }
}

static void give(int device, struct direction *way) {
  int64_t time = now();
  while (way->count > 0 && way->ring[way->first].due <= time) {
    struct packet *packet = &way->ring[way->first];
    if (write(device, packet->bytes, packet->length) < 0 && errno != EIO) perror("write");
    way->first = (way->first + 1) % SLOTS;
    way->count--;
  }
}

int main(int count, char **arguments) {
  if (count != 6) {
    fprintf(stderr, "usage: delay SERVER-NAMESPACE CLIENT-NAMESPACE BITS-PER-SECOND MICROSECONDS QUEUE-BYTES\n");
    return 64;
  }
  int server = open_device(arguments[1]), client = open_device(arguments[2]);
  int64_t delay = atoll(arguments[4]) * 1000;
  struct direction down = {.rate = atoll(arguments[3]), .limit = atoll(arguments[5])}, up = {0};
  down.ring = calloc(SLOTS, sizeof *down.ring);
  up.ring = calloc(SLOTS, sizeof *up.ring);
  if (!down.ring || !up.ring) fail("calloc");
  struct sched_param priority = {.sched_priority = 10};
  /* Without the right to it, the delays are less exact. */
  sched_setscheduler(0, SCHED_FIFO, &priority);
  signal(SIGTERM, end);
  signal(SIGINT, end);
  printf("ready\n");
  fflush(stdout);
  while (!is_ended) {
    int64_t next = INT64_MAX;
    if (down.count > 0) next = down.ring[down.first].due;
    if (up.count > 0 && up.ring[up.first].due < next) next = up.ring[up.first].due;
    struct timespec wait = {1, 0};
    if (next != INT64_MAX) {
      int64_t rest = next - now();
      if (rest < 0) rest = 0;
      wait.tv_sec = rest / 1000000000;
      wait.tv_nsec = rest % 1000000000;
    }
    struct pollfd polled[2] = {{.fd = server, .events = POLLIN}, {.fd = client, .events = POLLIN}};
    ppoll(polled, 2, &wait, NULL);
    take(server, &down, delay);
    take(client, &up, delay);
    give(client, &down);
    give(server, &up);
  }
  printf("dropped %lld\n", (long long)(down.dropped + up.dropped));
  return 0;
}
