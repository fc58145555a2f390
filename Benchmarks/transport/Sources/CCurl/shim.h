#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call.
static inline CURLcode reel_set_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode reel_set_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode reel_set_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode reel_set_write(CURL *h, CURLoption o, size_t (*f)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(h, o, f);
}
static inline CURLcode reel_set_prereq(CURL *h, int (*f)(void *, char *, char *, int, int)) {
  return curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, f);
}
static inline long reel_get_long(CURL *h, CURLINFO i) { long v = 0; curl_easy_getinfo(h, i, &v); return v; }
static inline void *reel_get_pointer(CURL *h) { void *v = 0; curl_easy_getinfo(h, CURLINFO_PRIVATE, &v); return v; }
static inline CURLMcode reel_multi_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
// Of a message, the handle and the result; the C struct has a union.
static inline CURL *reel_done(CURLM *m, CURLcode *result) {
  int left;
  for (CURLMsg *g; (g = curl_multi_info_read(m, &left)) != NULL;)
    if (g->msg == CURLMSG_DONE) { *result = g->data.result; return g->easy_handle; }
  return NULL;
}
static inline void reel_global_init(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }
