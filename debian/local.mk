# SPDX-License-Identifier: MIT
# The Debian packages, which build-aux/deb makes from the release.
EXTRA_DIST += build-aux/deb \
	debian/changelog \
	debian/clean \
	debian/control \
	debian/copyright \
	debian/libnabc-dev.docs \
	debian/libnabc-dev.examples \
	debian/libnabc-dev.install \
	debian/libnabc-glib-dev.examples \
	debian/libnabc-glib-dev.install \
	debian/libnabc-glib1.install \
	debian/libnabc-glib1.symbols \
	debian/libnabc1.install \
	debian/libnabc1.symbols \
	debian/nabc-dkms.docs \
	debian/nabc-dkms.install \
	debian/nabc-dkms.sysusers \
	debian/nabcctl.install \
	debian/not-installed \
	debian/rules \
	debian/source/format \
	debian/source/lintian-overrides \
	debian/sweet.README.Debian \
	debian/sweet.d/application.service \
	debian/sweet.d/groups.conf \
	debian/sweet.d/index.html \
	debian/sweet.d/jit.conf \
	debian/sweet.d/site.conf \
	debian/sweet.d/sweet.conf \
	debian/sweet.dirs \
	debian/sweet.docs \
	debian/sweet.examples \
	debian/sweet.install \
	debian/sweet.logrotate \
	debian/sweet.postrm \
	debian/sweet.sysusers \
	debian/tests/application \
	debian/tests/common.sh \
	debian/tests/control \
	debian/tests/groups \
	debian/tests/library \
	debian/tests/module \
	debian/tests/server
