// Whether libcurl uses a connection again that was opened ahead: by CURLOPT_CONNECT_ONLY, by a request that is stopped
// before it is sent (CURLOPT_PREREQFUNCTION), and by a HEAD request. Prints a line for each.
#include <curl/curl.h>
#include <stdio.h>

static size_t discard(char *bytes, size_t size, size_t count, void *context) {
  (void)bytes, (void)size, (void)context;
  return count;
}

static int stop(void *context, char *remote, char *local, int remote_port, int local_port) {
  (void)context, (void)remote, (void)local, (void)remote_port, (void)local_port;
  return CURL_PREREQFUNC_ABORT;
}

static CURL *request(char **arguments) {
  CURL *easy = curl_easy_init();
  curl_easy_setopt(easy, CURLOPT_URL, arguments[1]);
  curl_easy_setopt(easy, CURLOPT_CAINFO, arguments[2]);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  return easy;
}

// Returns the number of connections that it opened.
static long perform(CURLM *multi, CURL *easy) {
  long count = 0;
  int running = 1;
  curl_multi_add_handle(multi, easy);
  while (running) {
    curl_multi_perform(multi, &running);
    if (running) curl_multi_poll(multi, NULL, 0, 100, NULL);
  }
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &count);
  return count;
}

int main(int count, char **arguments) {
  if (count < 3) return 64;
  const char *names[] = {"CURLOPT_CONNECT_ONLY", "CURLOPT_PREREQFUNCTION", "HEAD"};
  for (int way = 0; way < 3; way++) {
    CURLM *multi = curl_multi_init();
    CURL *ahead = request(arguments);
    if (way == 0) curl_easy_setopt(ahead, CURLOPT_CONNECT_ONLY, 1L);
    if (way == 1) curl_easy_setopt(ahead, CURLOPT_PREREQFUNCTION, stop);
    if (way == 2) curl_easy_setopt(ahead, CURLOPT_NOBODY, 1L);
    perform(multi, ahead);
    if (way > 0) curl_multi_remove_handle(multi, ahead);
    printf("%s: %s\n", names[way], perform(multi, request(arguments)) ? "not used again" : "used again");
  }
}
