/* SPDX-License-Identifier: MIT */
/*
 * test-esp.c - units over IPsec, which encrypts packets in place if it considers them
 * its own: the bytes arrive, and those of the unit do not change.
 */
#include <nabc-uapi.h>
#include <stdint.h>
#include <sys/socket.h>

#include "device.h"
#include "guest.h"

enum { SIZE = 200000 };

static const char *const ciphers[] = {
	"aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128",
	"enc 'cbc(aes)' 0x000102030405060708090a0b0c0d0e0f"
	" auth-trunc 'hmac(sha256)' 0x000102030405060708090a0b0c0d0e0f"
	"101112131415161718191a1b1c1d1e1f 128",
	"enc 'ecb(cipher_null)' ''"
	" auth-trunc 'hmac(sha256)' 0x000102030405060708090a0b0c0d0e0f"
	"101112131415161718191a1b1c1d1e1f 128",
};

/* Data is encrypted from here to the peer, acknowledgements are not. */
static void encrypt(int family, const char *cipher)
{
	const char *near = family == AF_INET ? "10.9.0.1" : "fd09::1";
	const char *far = family == AF_INET ? "10.9.0.2" : "fd09::2";

	guest_run("/sbin/ip xfrm state add src %s dst %s proto esp spi 0x1001 mode transport %s",
		  near, far, cipher);
	guest_run("/sbin/ip -n peer xfrm state add src %s dst %s proto esp spi 0x1001 mode "
		  "transport %s",
		  near, far, cipher);
	guest_run("/sbin/ip xfrm policy add src %s dst %s proto 6 dir out"
		  " tmpl src %s dst %s proto esp mode transport",
		  near, far, near, far);
}

static void in_the_clear(void)
{
	guest_run("/sbin/ip xfrm policy flush && /sbin/ip xfrm state flush &&"
		  " /sbin/ip -n peer xfrm state flush");
}

static void test_cipher(struct device *device, int family, const char *cipher, uint32_t flags)
{
	static const struct {
		uint64_t offset, length;
	} ranges[] = {{0, 1},	  {1, 100},	  {5, 1400}, {4095, 2},
		      {3, 30000}, {32760, 70000}, {0, SIZE}, {7, SIZE - 8}};
	static unsigned char bytes[SIZE];
	struct guest_pair pair;
	uint64_t id = device_unit(device, 21, SIZE);
	long sum = nabc_sum(device->fd, id, 0, SIZE);

	encrypt(family, cipher);
	pair = guest_connect(family);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		uint64_t done = 0;

		while (done < ranges[i].length) {
			ssize_t sent =
				nabc_socksend(device->fd, pair.near, id, ranges[i].offset + done,
					      ranges[i].length - done, flags | NABC_SEND_DONTWAIT);

			must(sent > 0);
			must(guest_receive(pair.far, 21, ranges[i].offset + done, (size_t)sent));
			done += (uint64_t)sent;
		}
	}
	/* That many packets were encrypted. */
	guest_run("/sbin/ip -n peer -s xfrm state | grep -q '[1-9][0-9][0-9](packets)'");
	must(nabc_copy(device->fd, id, 0, SIZE, bytes) == 0);
	must(guest_holds(bytes, 21, 0, SIZE));
	must(nabc_sum(device->fd, id, 0, SIZE) == sum);
	must(nabc_destroy(device->fd, id) == 0);
	guest_disconnect(&pair);
	in_the_clear();
	guest_tested("IPv%d, flags %x: %.30s", family == AF_INET ? 4 : 6, flags, cipher);
}

int main(void)
{
	struct device device;

	device_open(&device);
	for (int on = 0; on < 2; on++) {
		guest_offload(on);
		for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
			test_cipher(&device, AF_INET, ciphers[i], 0);
			test_cipher(&device, AF_INET, ciphers[i], NABC_SEND_SUMS);
			test_cipher(&device, AF_INET6, ciphers[i], 0);
			test_cipher(&device, AF_INET6, ciphers[i], NABC_SEND_SUMS);
		}
	}
	device_close(&device);
	return 0;
}
