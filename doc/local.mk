# SPDX-License-Identifier: MIT
# What is longer than a manual page, with the files that go with it: installed, for those who have no
# sources.
dist_doc_DATA += doc/embedding.md doc/library.md doc/workers.md
recipesdir = $(docdir)/recipes
dist_recipes_DATA =
if SWEET
dist_doc_DATA += doc/coming-from.md doc/haproxy.cfg doc/haproxy.md doc/operator.md
# One for each application; tests/recipes/ tests them.
dist_recipes_DATA += \
	doc/recipes/README.md \
	doc/recipes/cgit.md \
	doc/recipes/debian-mirror.md \
	doc/recipes/django.md \
	doc/recipes/dokuwiki.md \
	doc/recipes/fastapi.md \
	doc/recipes/flask.md \
	doc/recipes/git.md \
	doc/recipes/gitweb.md \
	doc/recipes/languages.md \
	doc/recipes/mapserver.md \
	doc/recipes/mediawiki.md \
	doc/recipes/nextcloud.md \
	doc/recipes/node.md \
	doc/recipes/phpmyadmin.md \
	doc/recipes/rails.md \
	doc/recipes/single-page-application.md \
	doc/recipes/wordpress.md
endif
# Guides for readers of the sources, with the drawings of all.
EXTRA_DIST += doc/by-id.svg doc/kernel-module.md doc/page.svg doc/request.svg
