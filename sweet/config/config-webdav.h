/* SPDX-License-Identifier: MIT */
/*
 * config-webdav.h - where clients may write files (the key webdav), and where they must not.
 */
#ifndef SWEET_CONFIG_WEBDAV_H
#define SWEET_CONFIG_WEBDAV_H

struct config;
struct config_tree;

/* Complains of paths with webdav that are not safe; call it when all scopes are there. */
void config_webdav_check(struct config_tree *tree, struct config *config);

#endif
