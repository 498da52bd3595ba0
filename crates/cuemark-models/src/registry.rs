//! Every model, found by name.

use crate::{ModelCard, ModelError, Result, zoo};
use cuemark_core::nearest::nearest;

/// Every model, in the order the documentation lists them: one line per file or folder in `zoo/`.
pub static MODELS: &[&ModelCard] = &[
    &zoo::tan2d::CARD,
    &zoo::mdd::CARD,
    &zoo::tcn_dcm::CARD,
    &zoo::ranet::CARD,
    &zoo::mgpn::CARD,
    &zoo::trm::CARD,
    &zoo::mmn::CARD,
    &zoo::rmmn::CARD,
    &zoo::tgn::CARD,
    &zoo::cmin::CARD,
    &zoo::csmgan::CARD,
    &zoo::ia_net::CARD,
    &zoo::drn::CARD,
    &zoo::lgi::CARD,
    &zoo::plrn::CARD,
    &zoo::ablr::CARD,
    &zoo::scdm::CARD,
    &zoo::vslnet::CARD,
    &zoo::tmlga::CARD,
    &zoo::lvtr::CARD,
    &zoo::ms_detr::CARD,
    &zoo::moment_detr::CARD,
    &zoo::qd_detr::CARD,
    &zoo::eatr::CARD,
    &zoo::cg_detr::CARD,
    &zoo::tr_detr::CARD,
    &zoo::uvcom::CARD,
    &zoo::taskweave::CARD,
    &zoo::univtg::CARD,
    &zoo::cet::CARD,
    &zoo::bet::CARD,
    &zoo::cnm::CARD,
    &zoo::cpl::CARD,
    &zoo::tga::CARD,
    &zoo::wssl::CARD,
    &zoo::ctrl::CARD,
    &zoo::acrn::CARD,
    &zoo::tsp_prl::CARD,
    &zoo::xml::CARD,
    &zoo::reloclnet::CARD,
    &zoo::conquer::CARD,
    &zoo::ms_sl::CARD,
];

/// The card of the model called `name`.
///
/// # Errors
/// When there is none; the error knows the nearest name.
pub fn find(name: &str) -> Result<&'static ModelCard> {
    MODELS.iter().find(|card| card.name == name).copied().ok_or_else(|| ModelError::Unknown {
        name: name.to_owned(),
        nearest: nearest(name, MODELS.iter().map(|card| card.name)),
    })
}
