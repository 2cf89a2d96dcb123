// Prints the addresses that c-ares finds for a name, one a line, or the error.
#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>

static void found(void *done, int status, int timeouts, struct ares_addrinfo *all)
{
	char text[INET6_ADDRSTRLEN];
	struct ares_addrinfo_node *a;

	(void)timeouts;
	*(int *)done = 1;
	if (status == ARES_ENOTFOUND || status == ARES_ENODATA)
		puts("none");
	else if (status == ARES_ESERVFAIL || status == ARES_ETIMEOUT || status == ARES_ECONNREFUSED)
		puts("again");
	else if (status != ARES_SUCCESS)
		puts(ares_strerror(status));
	for (a = all != NULL ? all->nodes : NULL; a != NULL; a = a->ai_next) {
		const void *address = a->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr
							      : (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
		puts(inet_ntop(a->ai_family, address, text, sizeof text));
	}
	ares_freeaddrinfo(all);
}

int main(int argc, char **argv)
{
	struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT};
	ares_channel channel;
	int done = 0;

	if (argc != 2 || ares_library_init(ARES_LIB_INIT_ALL) != 0 || ares_init(&channel) != 0)
		return 2;
	if (strcmp(argv[1], "-version") == 0) {
		puts(ares_version(NULL));
		return 0;
	}
	ares_getaddrinfo(channel, argv[1], NULL, &hints, found, &done);
	while (!done) {
		fd_set readable, writable;
		struct timeval wait, *left;
		int most;

		FD_ZERO(&readable);
		FD_ZERO(&writable);
		most = ares_fds(channel, &readable, &writable);
		left = ares_timeout(channel, NULL, &wait);
		if (most > 0)
			select(most, &readable, &writable, NULL, left);
		ares_process(channel, &readable, &writable);
	}
	ares_destroy(channel);
	return 0;
}
