# SPDX-License-Identifier: MIT
# What is longer than a manual page, with the files that go with it.
if SWEET
dist_doc_DATA += doc/haproxy.cfg doc/haproxy.md
endif
# One for each application; tests/recipes/ tests them.
EXTRA_DIST += \
	doc/recipes/README.md \
	doc/recipes/dokuwiki.md \
	doc/recipes/mediawiki.md \
	doc/recipes/nextcloud.md \
	doc/recipes/phpmyadmin.md \
	doc/recipes/wordpress.md
# Guides for readers of the sources, with their drawings.
EXTRA_DIST += doc/coming-from.md doc/operator.md doc/workers.md doc/library.md doc/embedding.md doc/kernel-module.md \
	doc/by-id.svg doc/request.svg doc/page.svg
EXTRA_DIST += \
	doc/recipes/cgit.md \
	doc/recipes/debian-mirror.md \
	doc/recipes/django.md \
	doc/recipes/fastapi.md \
	doc/recipes/flask.md \
	doc/recipes/git.md \
	doc/recipes/gitweb.md \
	doc/recipes/languages.md \
	doc/recipes/mapserver.md \
	doc/recipes/node.md \
	doc/recipes/rails.md \
	doc/recipes/single-page-application.md
