/* SPDX-License-Identifier: MIT */
#include "ctf/packet.h"

void ky_ctf_uuid(uint8_t uuid[KY_CTF_UUID_SIZE], uint64_t hi, uint64_t lo)
{
	for (unsigned int i = 0; i < 8; i++) {
		uuid[i] = (uint8_t)(hi >> (56 - 8 * i));
		uuid[i + 8] = (uint8_t)(lo >> (56 - 8 * i));
	}
}

void ky_ctf_packet_finish(struct ky_ctf_packet *p, uint32_t n_bytes)
{
	p->magic = KY_CTF_MAGIC;
	p->content_bits = p->packet_bits = 8 * (sizeof(*p) + (uint64_t)n_bytes);
}

void ky_ctf_packet_pad(struct ky_ctf_packet *p, uint32_t n_bytes)
{
	p->packet_bits += 8 * (uint64_t)n_bytes;
}

int64_t ky_ctf_packet_check(const struct ky_ctf_packet *p, const struct ky_ctf_packet *like)
{
	uint64_t content = p->content_bits / 8;

	if (p->magic != KY_CTF_MAGIC || memcmp(p->uuid, like->uuid, sizeof(p->uuid)) ||
		p->stream_id != like->stream_id ||
		p->stream_instance_id != like->stream_instance_id)
		return -EBADMSG;
	if (p->packet_bits - p->content_bits >= 8 * KY_CTF_PAGE || p->packet_bits % 8 ||
		p->content_bits % 8 || content < sizeof(*p))
		return -EBADMSG;
	return (int64_t)(p->packet_bits / 8);
}
