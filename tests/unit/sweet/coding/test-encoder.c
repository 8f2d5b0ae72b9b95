/* SPDX-License-Identifier: MIT */
/*
 * test-encoder.c - unit tests of encoder.c and of the encoders: what they write is
 * decoded by their libraries, whatever the pieces; and the limit of the output.
 */
#include "coding/encoder.h"
#include "http/accept.h"

#include "suite.h"

#ifdef HAVE_ZLIB
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#endif
#ifdef HAVE_BROTLI
#include <brotli/decode.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#define LARGEST ((size_t)300000)

/* Each returns the bytes decoded, or -1; NULL: there is no such encoder either. */
#ifdef HAVE_ZLIB
static long decode_gzip(const struct encoder_output *output, void *text)
{
	z_stream stream = {.next_in = output->bytes,
			   .avail_in = (uInt)output->length,
			   .next_out = text,
			   .avail_out = (uInt)LARGEST};
	int status;

	ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
	status = inflate(&stream, Z_FINISH);
	(void)inflateEnd(&stream);
	return status == Z_STREAM_END && stream.avail_in == 0 ? (long)stream.total_out : -1;
}
#else
#define decode_gzip NULL
#endif

#ifdef HAVE_BROTLI
static long decode_br(const struct encoder_output *output, void *text)
{
	size_t length = LARGEST;

	return BrotliDecoderDecompress(output->length, output->bytes, &length, text) ==
			       BROTLI_DECODER_RESULT_SUCCESS
		       ? (long)length
		       : -1;
}
#else
#define decode_br NULL
#endif

#ifdef HAVE_ZSTD
static long decode_zstd(const struct encoder_output *output, void *text)
{
	size_t length = ZSTD_decompress(text, LARGEST, output->bytes, output->length);

	return ZSTD_isError(length) ? -1 : (long)length;
}
#else
#define decode_zstd NULL
#endif

/* Returns how many bytes of a stream that has not ended can be decoded. */
static size_t decode_begun(enum coding coding, const struct encoder_output *output, void *text)
{
	size_t length = 0;

#ifdef HAVE_ZLIB
	if (coding == CODING_GZIP) {
		z_stream stream = {.next_in = output->bytes,
				   .avail_in = (uInt)output->length,
				   .next_out = text,
				   .avail_out = (uInt)LARGEST};

		ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
		(void)inflate(&stream, Z_SYNC_FLUSH);
		length = stream.total_out;
		(void)inflateEnd(&stream);
	}
#endif
#ifdef HAVE_BROTLI
	if (coding == CODING_BR) {
		BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
		size_t in = output->length, out = LARGEST;
		const uint8_t *next_in = output->bytes;
		uint8_t *next_out = text;

		(void)BrotliDecoderDecompressStream(state, &in, &next_in, &out, &next_out, &length);
		BrotliDecoderDestroyInstance(state);
	}
#endif
#ifdef HAVE_ZSTD
	if (coding == CODING_ZSTD) {
		ZSTD_DCtx *context = ZSTD_createDCtx();
		ZSTD_inBuffer in = {output->bytes, output->length, 0};
		ZSTD_outBuffer out = {text, LARGEST, 0};

		while (!ZSTD_isError(ZSTD_decompressStream(context, &out, &in)) && in.pos < in.size)
			;
		length = out.pos;
		(void)ZSTD_freeDCtx(context);
	}
#endif
	return length;
}

static long (*const decoders[CODINGS])(const struct encoder_output *output, void *text) = {
	[CODING_BR] = decode_br, [CODING_ZSTD] = decode_zstd, [CODING_GZIP] = decode_gzip};

/* Text that becomes smaller; or noise. */
static char *make_text(size_t length, bool noise)
{
	char *text = must_alloc(length);
	uint64_t state = 4711;

	for (size_t i = 0; i < length; i++)
		text[i] = noise ? (char)random_next(&state) : "words of text, "[i * i % 15];
	return text;
}

static enum encoder_result encode(const struct encoder *encoder, const char *text, size_t length,
				  size_t piece, struct encoder_output *output)
{
	enum encoder_result result;
	void *state = encoder->open(length);
	size_t done = 0;

	ck_assert_ptr_nonnull(state);
	do {
		size_t part = length - done < piece ? length - done : piece;
		/* Of its exact size, so that memory checkers detect a read beyond. */
		char *copy = must_alloc(part);

		memcpy(copy, text + done, part);
		done += part;
		result = encoder->write(state, copy, part,
					done == length ? ENCODER_END : ENCODER_MORE, output);
		free(copy);
	} while (result == ENCODER_GOOD && done < length);
	encoder->close(state);
	return result;
}

/* A fast stream: after each flush, a client can decode what came, and at the end all. */
START_TEST(test_flushed)
{
	const struct encoder *encoder = encoder_of((enum coding)_i);
	char *text = make_text(LARGEST, false), *back = must_alloc(LARGEST);
	struct encoder_output output = {.most = 2 * LARGEST};
	static const size_t pieces[] = {1, 1000, 65536, 200000};
	void *state = encoder ? encoder->open_fast() : NULL;
	size_t done = 0;

	for (unsigned i = 0; encoder && i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		ck_assert_int_eq(
			encoder->write(state, text + done, pieces[i], ENCODER_MORE, &output),
			ENCODER_GOOD);
		ck_assert_int_eq(encoder->write(state, "", 0, ENCODER_FLUSH, &output),
				 ENCODER_GOOD);
		done += pieces[i];
		ck_assert_uint_eq(decode_begun((enum coding)_i, &output, back), done);
		ck_assert_mem_eq(back, text, done);
		/* Nothing came since. */
		ck_assert_int_eq(encoder->write(state, "", 0, ENCODER_FLUSH, &output),
				 ENCODER_GOOD);
	}
	if (encoder) {
		ck_assert_int_eq(encoder->write(state, "", 0, ENCODER_END, &output), ENCODER_GOOD);
		ck_assert_int_eq(decoders[_i](&output, back), (long)done);
		ck_assert_mem_eq(back, text, done);
		ck_assert_uint_lt(output.length, done / 4);
		encoder->close(state);
	}
	free(output.bytes);
	free(back);
	free(text);
}
END_TEST

START_TEST(test_decoded)
{
	static const size_t lengths[] = {0, 1, 100, 16384, 65536, 65537, LARGEST};
	const struct encoder *encoder = encoder_of((enum coding)(_i % CODINGS));
	bool noise = _i >= CODINGS;
	char *back = must_alloc(LARGEST);

	for (unsigned i = 0; encoder && i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t piece = 1000; piece <= LARGEST; piece *= 8) {
			char *text = make_text(lengths[i], noise);
			struct encoder_output output = {.most = 2 * LARGEST};

			ck_assert_int_eq(encode(encoder, text, lengths[i], piece, &output),
					 ENCODER_GOOD);
			ck_assert_uint_le(output.length, output.room);
			ck_assert_int_eq(decoders[_i % CODINGS](&output, back), (long)lengths[i]);
			ck_assert_mem_eq(back, text, lengths[i]);
			ck_assert(noise || lengths[i] < 16384 || output.length < lengths[i] / 4);
			free(output.bytes);
			free(text);
		}
	free(back);
}
END_TEST

/* Nothing is written beyond the limit, and one byte less than the output is too little. */
START_TEST(test_limit)
{
	const struct encoder *encoder = encoder_of((enum coding)_i);
	char *text = make_text(100000, true);
	struct encoder_output whole = {.most = 2 * LARGEST};
	size_t limits[4] = {0, 1, 50000, 0};

	if (encoder) {
		ck_assert_int_eq(encode(encoder, text, 100000, 30000, &whole), ENCODER_GOOD);
		limits[3] = whole.length - 1;
	}
	for (unsigned i = 0; encoder && i < 4; i++) {
		struct encoder_output output = {.most = limits[i]};

		ck_assert_int_eq(encode(encoder, text, 100000, 30000, &output), ENCODER_TOO_LARGE);
		ck_assert_uint_le(output.room, limits[i]);
		free(output.bytes);
	}
	free(whole.bytes);
	free(text);
}
END_TEST

/* Entity tags name the revision: equal pieces give equal bytes. */
START_TEST(test_same_again)
{
	const struct encoder *encoder = encoder_of((enum coding)_i);
	char *text = make_text(LARGEST, false);
	struct encoder_output outputs[2] = {{.most = LARGEST}, {.most = LARGEST - 1}};

	for (unsigned i = 0; encoder && i < 2; i++)
		ck_assert_int_eq(encode(encoder, text, LARGEST, 65536, &outputs[i]), ENCODER_GOOD);
	if (encoder) {
		ck_assert_uint_eq(outputs[0].length, outputs[1].length);
		ck_assert_mem_eq(outputs[0].bytes, outputs[1].bytes, outputs[0].length);
		ck_assert_uint_eq(encoder->revision(), encoder->revision());
		ck_assert_uint_ne(encoder->revision(), 0);
	}
	free(outputs[0].bytes);
	free(outputs[1].bytes);
	free(text);
}
END_TEST

START_TEST(test_closed_half_way)
{
	const struct encoder *encoder = encoder_of((enum coding)_i);
	struct encoder_output output = {.most = LARGEST};
	void *state = encoder ? encoder->open(LARGEST) : NULL;

	if (!encoder)
		return;
	ck_assert_int_eq(encoder->write(state, "half", 4, ENCODER_MORE, &output), ENCODER_GOOD);
	encoder->close(state);
	free(output.bytes);
}
END_TEST

/* A message says which library and which package. */
START_TEST(test_missing)
{
	static const char *const packages[CODINGS] = {[CODING_BR] = "libbrotli-dev",
						      [CODING_ZSTD] = "libzstd-dev",
						      [CODING_GZIP] = "zlib1g-dev"};

	for (unsigned i = 0; i < CODINGS; i++) {
		const char *text = encoder_missing((enum coding)i);

		ck_assert_ptr_nonnull(strstr(text, packages[i]));
		ck_assert_ptr_nonnull(strstr(text, coding_token((enum coding)i)));
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_decoded, 0, 2 * CODINGS);
	tcase_add_loop_test(tcase, test_flushed, 0, CODINGS);
	tcase_add_loop_test(tcase, test_limit, 0, CODINGS);
	tcase_add_loop_test(tcase, test_same_again, 0, CODINGS);
	tcase_add_loop_test(tcase, test_closed_half_way, 0, CODINGS);
	tcase_add_test(tcase, test_missing);
}

RUN_SUITE("encoder", fill)
