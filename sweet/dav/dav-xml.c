/* SPDX-License-Identifier: MIT */
/*
 * dav-xml.c - see dav-xml.h.  No state: any thread.
 */
#include <expat.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dav/dav-xml.h"

#define SEPARATOR '\n' /* between the parts of a name; no part has one */
#define XML_SPACE "http://www.w3.org/XML/1998/namespace"

struct reading {
	XML_Parser parser;
	struct dav_node *root, *at; /* at: the element that is open */
	GPtrArray *declared;	    /* for the next element */
	unsigned depth, nodes;
	bool failed;
};

/* --- reading --------------------------------------------------------------------------- */

static void free_attribute(void *data)
{
	struct dav_attribute *attribute = data;

	g_free(attribute->space);
	g_free(attribute->local);
	g_free(attribute->prefix);
	g_free(attribute->value);
	g_free(attribute);
}

static void free_node(void *data)
{
	dav_xml_free(data);
}

void dav_xml_free(struct dav_node *root)
{
	if (!root)
		return;
	g_free(root->space);
	g_free(root->local);
	g_free(root->prefix);
	if (root->text)
		g_string_free(root->text, TRUE);
	if (root->declared)
		g_ptr_array_unref(root->declared);
	if (root->attributes)
		g_ptr_array_unref(root->attributes);
	if (root->children)
		g_ptr_array_unref(root->children);
	g_free(root);
}

static void fail(struct reading *reading)
{
	reading->failed = true;
	(void)XML_StopParser(reading->parser, XML_FALSE);
}

/* Splits "SPACE\nLOCAL\nPREFIX", "SPACE\nLOCAL" or "LOCAL". */
static void split_name(const char *name, char **space, char **local, char **prefix)
{
	const char *first = strchr(name, SEPARATOR);
	const char *second = first ? strchr(first + 1, SEPARATOR) : NULL;

	*space = first ? g_strndup(name, (gsize)(first - name)) : g_strdup("");
	name = first ? first + 1 : name;
	*local = second ? g_strndup(name, (gsize)(second - name)) : g_strdup(name);
	*prefix = g_strdup(second ? second + 1 : "");
}

static bool count(struct reading *reading)
{
	if (reading->failed)
		return false;
	if (++reading->nodes <= DAV_XML_NODES_MAX)
		return true;
	fail(reading);
	return false;
}

static struct dav_node *add_node(struct reading *reading)
{
	struct dav_node *node = g_new0(struct dav_node, 1);

	node->parent = reading->at;
	if (!reading->at) {
		reading->root = node;
		return node;
	}
	if (!reading->at->children)
		reading->at->children = g_ptr_array_new_with_free_func(free_node);
	g_ptr_array_add(reading->at->children, node);
	return node;
}

static void on_namespace(void *data, const XML_Char *prefix, const XML_Char *space)
{
	struct reading *reading = data;

	if (!count(reading))
		return;
	if (!reading->declared)
		reading->declared = g_ptr_array_new_with_free_func(g_free);
	g_ptr_array_add(reading->declared, g_strdup(prefix ? prefix : ""));
	g_ptr_array_add(reading->declared, g_strdup(space ? space : ""));
}

static void add_attributes(struct reading *reading, struct dav_node *node,
			   const XML_Char **attributes)
{
	for (; *attributes && count(reading); attributes += 2) {
		struct dav_attribute *attribute = g_new0(struct dav_attribute, 1);

		if (!node->attributes)
			node->attributes = g_ptr_array_new_with_free_func(free_attribute);
		split_name(attributes[0], &attribute->space, &attribute->local, &attribute->prefix);
		attribute->value = g_strdup(attributes[1]);
		g_ptr_array_add(node->attributes, attribute);
	}
}

static void on_begin(void *data, const XML_Char *name, const XML_Char **attributes)
{
	struct reading *reading = data;
	struct dav_node *node;

	if (!count(reading))
		return;
	if (++reading->depth > DAV_XML_DEPTH_MAX) {
		fail(reading);
		return;
	}
	node = add_node(reading);
	split_name(name, &node->space, &node->local, &node->prefix);
	node->declared = g_steal_pointer(&reading->declared);
	add_attributes(reading, node, attributes);
	reading->at = node;
}

static void on_end(void *data, const XML_Char *name)
{
	struct reading *reading = data;

	(void)name;
	if (reading->failed)
		return;
	reading->depth--;
	reading->at = reading->at->parent;
}

static void on_text(void *data, const XML_Char *text, int length)
{
	struct reading *reading = data;
	GPtrArray *siblings;
	struct dav_node *node = NULL;

	if (reading->failed || !reading->at)
		return;
	siblings = reading->at->children;
	if (siblings && siblings->len)
		node = siblings->pdata[siblings->len - 1];
	if (!node || node->local) {
		if (!count(reading))
			return;
		node = add_node(reading);
		node->text = g_string_new(NULL);
	}
	g_string_append_len(node->text, text, length);
}

static void on_doctype(void *data, const XML_Char *name, const XML_Char *system,
		       const XML_Char *public, int internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	fail(data);
}

struct dav_node *dav_xml_read(const char *data, size_t length)
{
	struct reading reading = {.parser = XML_ParserCreateNS(NULL, SEPARATOR)};

	if (!reading.parser)
		return NULL;
	XML_SetUserData(reading.parser, &reading);
	XML_SetReturnNSTriplet(reading.parser, 1);
	XML_SetElementHandler(reading.parser, on_begin, on_end);
	XML_SetCharacterDataHandler(reading.parser, on_text);
	XML_SetStartNamespaceDeclHandler(reading.parser, on_namespace);
	XML_SetStartDoctypeDeclHandler(reading.parser, on_doctype);
	if (length > INT_MAX || XML_Parse(reading.parser, data, (int)length, 1) != XML_STATUS_OK ||
	    reading.failed)
		g_clear_pointer(&reading.root, dav_xml_free);
	if (reading.declared)
		g_ptr_array_unref(reading.declared);
	XML_ParserFree(reading.parser);
	return reading.root;
}

/* --- looking ---------------------------------------------------------------------------- */

bool dav_node_is(const struct dav_node *node, const char *local)
{
	return node->local && strcmp(node->space, "DAV:") == 0 && strcmp(node->local, local) == 0;
}

const struct dav_node *dav_node_child(const struct dav_node *node, const char *local)
{
	for (unsigned i = 0; i < dav_node_children(node); i++)
		if (dav_node_is(dav_node_at(node, i), local))
			return dav_node_at(node, i);
	return NULL;
}

/* --- writing ---------------------------------------------------------------------------- */

void dav_xml_escape(GString *to, const char *text)
{
	char *escaped = g_markup_escape_text(text, -1);

	/* Blanks that a reader would change or merge. */
	for (const char *at = escaped; *at; at++)
		if (*at == '\r' || *at == '\n' || *at == '\t')
			g_string_append_printf(to, "&#%d;", *at);
		else
			g_string_append_c(to, *at);
	g_free(escaped);
}

/*
 * The namespaces that the elements around have declared in the text, the innermost last: pairs of
 * a prefix and a namespace, which the tree owns.
 */
struct writing {
	GString *to;
	GPtrArray *known;
};

static const char *find_space(const struct writing *writing, const char *prefix)
{
	for (guint i = writing->known->len; i; i -= 2)
		if (strcmp(writing->known->pdata[i - 2], prefix) == 0)
			return writing->known->pdata[i - 1];
	return strcmp(prefix, "xml") == 0 ? XML_SPACE : "";
}

static void declare(struct writing *writing, const char *prefix, const char *space, guint first)
{
	/* Not twice in one element. */
	for (guint i = first; i < writing->known->len; i += 2)
		if (strcmp(writing->known->pdata[i], prefix) == 0)
			return;
	if (strcmp(find_space(writing, prefix), space) == 0)
		return;
	g_string_append_printf(writing->to, *prefix ? " xmlns:%s=\"" : " xmlns%s=\"", prefix);
	dav_xml_escape(writing->to, space);
	g_string_append_c(writing->to, '"');
	g_ptr_array_add(writing->known, (void *)(uintptr_t)prefix);
	g_ptr_array_add(writing->known, (void *)(uintptr_t)space);
}

static void write_name(GString *to, const char *prefix, const char *local)
{
	if (*prefix)
		g_string_append_printf(to, "%s:", prefix);
	g_string_append(to, local);
}

static const char *own_language(const struct dav_node *node)
{
	for (guint i = 0; node->attributes && i < node->attributes->len; i++) {
		const struct dav_attribute *attribute = node->attributes->pdata[i];

		if (strcmp(attribute->space, XML_SPACE) == 0 &&
		    strcmp(attribute->local, "lang") == 0)
			return attribute->value;
	}
	return NULL;
}

/* Whether an element between the node and the top, both included, declares the prefix. */
static bool is_declared(const struct dav_node *node, const struct dav_node *top, const char *prefix)
{
	for (;; node = node->parent) {
		for (guint i = 0; node->declared && i < node->declared->len; i += 2)
			if (strcmp(node->declared->pdata[i], prefix) == 0)
				return true;
		if (node == top)
			return false;
	}
}

/* Declares what the element and those in it use of what is declared outside of the top. */
static void declare_used(struct writing *writing, const struct dav_node *node,
			 const struct dav_node *top)
{
	if (!node->local)
		return;
	if (!is_declared(node, top, node->prefix))
		declare(writing, node->prefix, node->space, 0);
	for (guint i = 0; node->attributes && i < node->attributes->len; i++) {
		const struct dav_attribute *attribute = node->attributes->pdata[i];

		if (*attribute->space && !is_declared(node, top, attribute->prefix))
			declare(writing, attribute->prefix, attribute->space, 0);
	}
	for (unsigned i = 0; i < dav_node_children(node); i++)
		declare_used(writing, dav_node_at(node, i), top);
}

static void write_attributes(struct writing *writing, const struct dav_node *element)
{
	for (guint i = 0; element->attributes && i < element->attributes->len; i++) {
		const struct dav_attribute *attribute = element->attributes->pdata[i];

		g_string_append_c(writing->to, ' ');
		write_name(writing->to, attribute->prefix, attribute->local);
		g_string_append(writing->to, "=\"");
		dav_xml_escape(writing->to, attribute->value);
		g_string_append_c(writing->to, '"');
	}
}

static void write_node(struct writing *writing, const struct dav_node *node, bool top);

static void write_children(struct writing *writing, const struct dav_node *element)
{
	for (unsigned i = 0; i < dav_node_children(element); i++)
		write_node(writing, dav_node_at(element, i), false);
}

/* Writes the xml:lang that an element inherits from what is not written. */
static void write_language(GString *to, const struct dav_node *element)
{
	const char *language = NULL;

	for (const struct dav_node *node = element->parent; node && !language; node = node->parent)
		language = own_language(node);
	if (!language || own_language(element))
		return;
	g_string_append(to, " xml:lang=\"");
	dav_xml_escape(to, language);
	g_string_append_c(to, '"');
}

static void write_node(struct writing *writing, const struct dav_node *node, bool top)
{
	guint first = writing->known->len;

	if (!node->local) {
		dav_xml_escape(writing->to, node->text->str);
		return;
	}
	g_string_append_c(writing->to, '<');
	write_name(writing->to, node->prefix, node->local);
	for (guint i = 0; node->declared && i < node->declared->len; i += 2)
		declare(writing, node->declared->pdata[i], node->declared->pdata[i + 1], first);
	if (top)
		declare_used(writing, node, node);
	write_attributes(writing, node);
	if (top)
		write_language(writing->to, node);
	if (dav_node_children(node)) {
		g_string_append_c(writing->to, '>');
		write_children(writing, node);
		g_string_append(writing->to, "</");
		write_name(writing->to, node->prefix, node->local);
		g_string_append_c(writing->to, '>');
	} else {
		g_string_append(writing->to, "/>");
	}
	g_ptr_array_set_size(writing->known, (gint)first);
}

void dav_xml_write(GString *to, const struct dav_node *element)
{
	struct writing writing = {to, g_ptr_array_new()};

	write_node(&writing, element, true);
	g_ptr_array_unref(writing.known);
}
