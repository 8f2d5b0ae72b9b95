/* SPDX-License-Identifier: MIT */
/*
 * wan-spoil.c - see wan-spoil.h.  The checksum is corrected by RFC 1624, equation 3:
 * its complement changes as the 16-bit word does.
 */
#include "wan-spoil.h"

#define TCP 6

/* A linear congruential generator, whose high bits are good enough. */
static uint64_t draw(struct wan_spoil *spoil)
{
	spoil->random =
		spoil->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return spoil->random >> 33;
}

static unsigned word_at(const unsigned char *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static void mend(unsigned char *sum, unsigned before, unsigned after)
{
	unsigned mended = (~word_at(sum) & 0xffffu) + (~before & 0xffffu) + after;

	mended = (mended & 0xffffu) + (mended >> 16);
	mended = (mended & 0xffffu) + (mended >> 16);
	sum[0] = (unsigned char)(~mended >> 8);
	sum[1] = (unsigned char)~mended;
}

void wan_spoil(struct wan_spoil *spoil, unsigned char *packet, size_t length)
{
	size_t tcp, data, at;
	unsigned before;

	if (!(spoil->share > 0) || length < 40 || packet[0] >> 4 != 4 || packet[9] != TCP)
		return;
	tcp = (size_t)(packet[0] & 15) * 4;
	if (tcp < 20 || tcp + 20 > length)
		return;
	data = tcp + (size_t)(packet[tcp + 12] >> 4) * 4;
	/* Only whole words of the checksum, which begin with the header. */
	if (data < tcp + 20 || length < data + 2)
		return;
	if ((double)draw(spoil) * 0x1p-31 >= spoil->share)
		return;
	at = data + draw(spoil) % ((length - data) / 2) * 2;
	before = word_at(packet + at);
	packet[at + (draw(spoil) & 1)] ^= (unsigned char)(1u << (draw(spoil) & 7));
	mend(packet + tcp + 16, before, word_at(packet + at));
	spoil->count++;
}
