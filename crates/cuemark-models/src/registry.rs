//! Every model, found by name.

use crate::{ModelCard, ModelError, Result, zoo};
use cuemark_core::nearest::nearest;
use serde::Serialize;

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

/// What the numbers of a method's fixture come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The authors' code was run.
    Authors,
    /// The method was written a second time from its description or from a TensorFlow graph, which was not run: agreement is a check of
    /// consistency, not of the authors' numbers.
    Rederived,
}

/// Methods whose authors' code could not be run.
const REDERIVED: [&str; 8] = ["tgn", "mdd", "ctrl", "acrn", "ablr", "scdm", "cet", "bet"];

impl ModelCard {
    /// What its fixture's numbers come from.
    pub fn reference(&self) -> Reference {
        if REDERIVED.contains(&self.name) { Reference::Rederived } else { Reference::Authors }
    }
}
