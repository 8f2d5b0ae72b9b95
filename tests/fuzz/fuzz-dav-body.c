/* SPDX-License-Identifier: MIT */
/*
 * fuzz-dav-body.c - the XML of WebDAV's requests (sweet/dav/dav-xml.c, dav-body.c): what is kept of
 * a property is XML again, which is complete in itself and names the same property.
 */
#include <glib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dav/dav-body.h"
#include "dav/dav-xml.h"

#include "fuzz.h"

static void check_element(const char *xml, const char *space, const char *local)
{
	struct dav_node *root = dav_xml_read(xml, strlen(xml));
	GString *again = g_string_new(NULL);

	MUST(root);
	MUST(strcmp(root->space, space) == 0 && strcmp(root->local, local) == 0);
	dav_xml_write(again, root);
	MUST(strcmp(again->str, xml) == 0);
	g_string_free(again, TRUE);
	dav_xml_free(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const readers[])(const char *data, size_t length, struct dav_body *body) = {
		dav_body_propfind, dav_body_proppatch, dav_body_lock};
	char *copy = exact_copy(data, size);

	for (unsigned i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct dav_body body;
		int status = readers[i](copy, size, &body);

		MUST(status == 0 || status == 400 || status == 422);
		if (status)
			continue;
		MUST(body.properties->len <= DAV_PROPERTIES_MAX);
		for (guint k = 0; k < body.properties->len; k++) {
			const struct dav_property *property = body.properties->pdata[k];

			if (property->xml)
				check_element(property->xml, property->space, property->local);
		}
		if (body.owner)
			check_element(body.owner, "DAV:", "owner");
		dav_body_clear(&body);
	}
	free(copy);
	return 0;
}
