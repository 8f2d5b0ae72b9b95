/* SPDX-License-Identifier: MIT */
/*
 * dav-xml.h - the XML of WebDAV's requests as a tree, and parts of it as XML again.
 *
 * Expat reads it, with namespaces.  A document type is refused, so there are no entities but the
 * five of XML; the depth and the number of elements are limited.
 */
#ifndef SWEET_DAV_XML_H
#define SWEET_DAV_XML_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#define DAV_XML_DEPTH_MAX 32
#define DAV_XML_NODES_MAX 4096 /* elements, texts and attributes */

struct dav_attribute {
	char *space, *local, *prefix; /* space, prefix: "" without one */
	char *value;
};

struct dav_node {
	struct dav_node *parent;
	char *space, *local, *prefix; /* of an element; local NULL: a text */
	GString *text;
	GPtrArray *declared;   /* pairs of a prefix and its namespace; NULL: none */
	GPtrArray *attributes; /* struct dav_attribute; NULL: none */
	GPtrArray *children;   /* struct dav_node; NULL: none */
};

/* Returns the root element, or NULL: malformed, or beyond a limit. */
struct dav_node *dav_xml_read(const char *data, size_t length);
void dav_xml_free(struct dav_node *root);

/* Returns true if it is that element of the namespace "DAV:". */
bool dav_node_is(const struct dav_node *node, const char *local);

/* Returns the first such child, or NULL. */
const struct dav_node *dav_node_child(const struct dav_node *node, const char *local);

/* Returns the number of children, and one of them. */
static inline unsigned dav_node_children(const struct dav_node *node)
{
	return node->children ? node->children->len : 0;
}

static inline const struct dav_node *dav_node_at(const struct dav_node *node, unsigned number)
{
	return node->children->pdata[number];
}

/*
 * Appends an element as XML that is complete in itself: with the namespaces that it uses, and the
 * xml:lang that it inherits.
 */
void dav_xml_write(GString *to, const struct dav_node *element);

/* Appends a text, escaped for contents and attributes; text: valid UTF-8. */
void dav_xml_escape(GString *to, const char *text);

#endif
