/* SPDX-License-Identifier: MIT */
/*
 * fcgi-stdio.c - a program that reads and prints by fcgi_stdio.h, whose names are those of stdio:
 * test_fcgi_preload.py compiles it.
 */
#include <fcgi_stdio.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Their names are in the header, their declarations are not. */
extern int FCGI_fgetpos(FCGI_FILE *file, fpos_t *place);
extern int FCGI_fsetpos(FCGI_FILE *file, const fpos_t *place);

static int print(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vprintf(format, arguments);
	va_end(arguments);
	return length;
}

/* Lines of the body, each with its number; a '>' that begins one is put back and read again. */
static void number_lines(void)
{
	char line[64];
	int c, count = 0;

	while ((c = getchar()) != EOF) {
		ungetc(c, stdin);
		if (!fgets(line, sizeof(line), stdin))
			break;
		print("%3d%c", ++count, c == '>' ? '!' : ' ');
		fputs(line, stdout);
	}
	printf("%d %d\n", feof(stdin) != 0, ferror(stdin));
}

static void copy_body(void)
{
	char bytes[4096];
	size_t got;

	while ((got = fread(bytes, 1, sizeof(bytes), stdin)) > 0)
		if (fwrite(bytes, 1, got, stdout) != got)
			break;
}

/* Files are files as before. */
static void use_file(void)
{
	FILE *file = tmpfile();
	char text[16] = "";
	fpos_t place;

	fprintf(file, "in a %s\n", "file");
	fflush(file);
	rewind(file);
	fgetpos(file, &place);
	printf("%d", fgetc(file));
	fsetpos(file, &place);
	fread(text, 1, 9, file);
	printf(" %s %ld %d %d\n", text, (long)ftell(file), fseek(file, 0, SEEK_END),
	       fileno(file) > 2);
	fclose(file);
	file = popen("echo piped", "r");
	fgets(text, sizeof(text), file);
	printf("%s%d\n", text, pclose(file));
	file = fopen("/nonexistent/file", "r");
	puts(file ? "opened" : "not opened");
	if (!freopen("/dev/null", "w", stderr))
		puts("not opened again");
}

int main(void)
{
	unsigned count = 0;

	while (FCGI_Accept() >= 0) {
		const char *query = getenv("QUERY_STRING");

		printf("Content-Type: text/%s\r\n\r\n", "plain");
		if (strcmp(query, "lines") == 0)
			number_lines();
		else if (strcmp(query, "copy") == 0)
			copy_body();
		else if (strcmp(query, "file") == 0)
			use_file();
		else if (strcmp(query, "error") == 0)
			fprintf(stderr, "stdio complains\n");
		else
			printf("%u%c%s", ++count, putchar(' '), query);
		FCGI_SetExitStatus(0);
		if (strcmp(query, "finish") == 0)
			FCGI_Finish();
	}
	return 0;
}
