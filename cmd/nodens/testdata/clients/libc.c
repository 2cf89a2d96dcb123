// Prints the addresses that the C library finds for a name, one a line, or the
// error.
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *all, *a;
	char text[INET6_ADDRSTRLEN];
	int error = argc == 2 ? getaddrinfo(argv[1], NULL, &hints, &all) : EAI_FAIL;

	if (error != 0) {
		puts(error == EAI_AGAIN ? "again" : error == EAI_NONAME || error == EAI_NODATA ? "none" : gai_strerror(error));
		return 1;
	}
	for (a = all; a != NULL; a = a->ai_next) {
		const void *address = a->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr
							      : (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
		puts(inet_ntop(a->ai_family, address, text, sizeof text));
	}
	freeaddrinfo(all);
	return 0;
}
