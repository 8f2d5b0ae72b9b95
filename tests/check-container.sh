#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-container.sh - the image of container/Containerfile, and compose.yaml with php-fpm beside it.
#
# The base images are made here from debootstrap's Debian, by the names that the files have for them,
# in a storage of podman's that ends with this test: no registry is asked.
#
# Environment: srcdir, builddir, in whose folder container/ it works.
# Exit status: 0 good, 1 not, 77 without root, podman, podman-compose, runc or a chroot.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
work=$builddir/container

skip()
{
	echo "$*"
	exit 77
}

die()
{
	echo "check-container: $*"
	exit 1
}

for program in podman podman-compose runc curl; do
	command -v $program >/dev/null || skip "$program is missing; on Debian: apt-get install $program"
done
lacks=$(cd "$srcdir/build-aux" && python3 -B -c 'import chroot; print(chroot.lacks())') || exit 1
[ -z "$lacks" ] || skip "$lacks"
debian=$(cd "$srcdir/build-aux" && python3 -B -c '
import chroot
print(chroot.release("trixie"))') || die "there is no Debian 13 to begin with"

end()
{
	podman rm --all --force
	podman volume prune --force
	podman network prune --force
	podman rmi --all --force
	rm -rf --one-file-system "$work"
}
[ ! -d "$work" ] || rm -rf --one-file-system "$work"
mkdir -p "$work" && cd "$work" || exit 1
cat >containers.conf <<'END'
[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
[network]
network_config_dir = "networks"
END
sed -i "s|\"networks\"|\"$work/networks\"|" containers.conf
cat >storage.conf <<END
[storage]
driver = "overlay"
graphroot = "$work/storage"
runroot = "$work/run"
END
export CONTAINERS_CONF="$work/containers.conf" CONTAINERS_STORAGE_CONF="$work/storage.conf"
trap 'end >end.log 2>&1' EXIT

# build IMAGE FOLDER FILE: with the network of the machine.
build()
{
	podman build --format docker --isolation=chroot --pull=never --network=host -t "$1" -f "$3" "$2" \
		>"build.log" 2>&1 || die "$3 does not build: $(tail -n 20 build.log)"
}

tar --one-file-system -C "$debian" -c . | podman import -q - docker.io/library/debian:trixie-slim >import.log 2>&1 ||
	die "podman takes no image: $(cat import.log)"
cat >php.containerfile <<'END'
FROM docker.io/library/debian:trixie-slim
RUN apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends \
	php8.4-fpm && mkdir -p /run/php /usr/local/etc && ln -s /etc/php/8.4/fpm/pool.d /usr/local/etc/php-fpm.d
CMD ["php-fpm8.4", "-F"]
END
build docker.io/library/php:8.4-fpm . php.containerfile
build sweet "$srcdir" "$srcdir/container/Containerfile"

# Alone: no root, one line about io_uring, a health check, an orderly end.
mkdir site && echo hello >site/index.html && chmod -R a+rX . "$work"
podman run -d --name alone --network=none -v "$work/site:/srv:ro" sweet >run.log 2>&1 ||
	die "the image does not run: $(cat run.log)"
tries=0
until podman exec alone curl -s http://127.0.0.1:8080/ >page 2>/dev/null; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || die "the server does not answer: $(podman logs alone 2>&1)"
	sleep 0.1
done
[ "$(cat page)" = hello ] || die "the page is: $(cat page)"
[ "$(podman exec alone id -u)" = 10001 ] || die "it runs as $(podman exec alone id)"
podman healthcheck run alone || die "the health check fails"
podman stop alone >stop.log 2>&1
status=$(podman inspect alone --format '{{.State.ExitCode}}')
[ "$status" = 0 ] || die "podman stop ends it with $status"
podman logs alone >logs 2>&1
[ "$(grep -c io_uring logs)" -le 1 ] || die "more than one line about io_uring: $(cat logs)"
! grep -i -E 'error|warning|fail' logs || die "the log complains"

# With php-fpm beside it.
mkdir -p compose/container && cp -r "$srcdir/container/php" compose/container/ && chmod -R a+rX compose
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cd compose/container/php || exit 1
sed -i "s|\"8080:8080\"|\"127.0.0.1:$port:8080\"|" compose.yaml
podman-compose up -d >"$work/up.log" 2>&1 || die "compose.yaml does not start: $(tail "$work/up.log")"
tries=0
until curl -s "http://127.0.0.1:$port/" >"$work/page" && grep -q "^PHP 8.* for SWEET/" "$work/page"; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || die "the script does not answer but: $(cat "$work/page" "$work/up.log")"
	sleep 0.1
done
podman-compose down >"$work/down.log" 2>&1
cd "$work" || exit 1
echo "check-container: the image serves without root, and php-fpm beside it: $(cat page)"
